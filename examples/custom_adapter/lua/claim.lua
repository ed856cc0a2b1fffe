-- given: worker_id, limit, serves (pairs of workflow and version; absent: anything). Answers with the fields of each claimed job.

for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'delayed', '-inf', text(now))) do
    local job = load_listed('delayed', id, id)
    if job then
        unlist(job)
        enlist(job)
    end
end

local lists = {'ready'}
if given.serves then
    -- Whoever serves anything fails the dead jobs: nobody serves the workflow that they do not name.
    lists = {'ready:dead'}
    for _, definition in ipairs(given.serves) do
        table.insert(lists, ready_list(definition[1]))
        table.insert(lists, ready_list(definition[1], definition[2]))
    end
end

local function next_of(list)
    local head = redis.call('ZRANGE', prefix .. list, 0, 0, 'WITHSCORES')
    return head[1] and {list = list, entry = head[1], score = tonumber(head[2])}
end

local function next_of_all()
    local first
    for _, list in ipairs(lists) do
        local head = next_of(list)
        if head and (not first or head.score < first.score
                or head.score == first.score and head.entry < first.entry) then
            first = head
        end
    end
    return first
end

-- Later than the job's last claim, even within one millisecond or after a step of the clock: the fence is new.
local function claim(job)
    local started_at = text(math.max(now, (job.started_at or FIRST_INSTANT) + 1))
    change(job, {
        status = 'RUNNING',
        attempt = text(job.attempt + 1),
        worker_id = given.worker_id,
        locked_at = started_at,
        started_at = started_at,
    })
    return fields_of(job.id)
end

local claimed = {}
while #claimed < given.limit do
    local found = next_of_all()
    if not found then
        break
    end
    local job = load_listed(found.list, found.entry, id_of(found.entry))
    if job and job.workflow_id then
        table.insert(claimed, claim(job))
    elseif job then
        change(job, {status = 'FAILED', completed_at = text(now), last_error = 'dead job: it names no workflow'})
    end
end
return cjson.encode(claimed)
