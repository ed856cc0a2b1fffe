-- Every script begins with this: how jobs are stored, and in which sorted sets they stand. A script is given the prefix
-- of all keys, an instant or '', and a JSON object; it answers with JSON.
--
--   job:<id>                     hash   the fields of a JobRecord; one that is None is absent
--   run:<run id>                 hash   stage id -> job id: one job per pair
--   ready                        set    due PENDING jobs by priority, age and id
--   ready:<n>:<workflow>         set    those of one workflow that are not pinned; n is the workflow's length
--   ready:<n>:<workflow>:<ver>   set    those that are pinned to a version
--   ready:dead                   set    those that do not say for which workflow they are
--   delayed                      set    other PENDING jobs by next_poll_at
--   locks, starts                sets   RUNNING jobs by locked_at, by started_at
--   last_id                      number
--
-- Instants are milliseconds since 1970, as text. Where a job stands follows from its fields alone, and `change` keeps
-- the two together. Redis does not roll back a script that fails: what can fail comes first.

local FIRST_INSTANT = -62135596800000 -- the year 1
local LAST_INSTANT = 253402300799999 -- the end of the year 9999
local LOOKED_AT = {
    'status', 'priority', 'workflow_id', 'definition_version', 'created_at', 'next_poll_at',
    'attempt', 'max_attempts', 'started_at', 'locked_at',
}

local prefix = KEYS[1]
local given = cjson.decode(ARGV[2])

local now
if ARGV[1] == '' then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
else
    now = tonumber(ARGV[1])
end

-- Lua would write a large number with an exponent.
local function text(number)
    return string.format('%.0f', number)
end

local function load(id)
    local job = {id = id}
    for i, value in ipairs(redis.call('HMGET', prefix .. 'job:' .. id, unpack(LOOKED_AT))) do
        job[LOOKED_AT[i]] = value or nil
    end
    return job.status and job
end

-- All fields of a job, or nil. Redis has them as names and values in turn.
local function fields_of(id)
    local flat = redis.call('HGETALL', prefix .. 'job:' .. id)
    local fields = {id = id}
    for i = 1, #flat, 2 do
        fields[flat[i]] = flat[i + 1]
    end
    return #flat > 0 and fields
end

-- A job whose key somebody has deleted by hand leaves its entry behind; nobody may stumble over that for ever.
local function load_listed(list, entry, id)
    local job = load(id)
    if not job then
        redis.call('ZREM', prefix .. list, entry)
    end
    return job
end

-- The length keeps the two names apart, whatever characters they are made of.
local function ready_list(workflow_id, version)
    local name = 'ready:' .. #workflow_id .. ':' .. workflow_id
    return version and name .. ':' .. version or name
end

local function ready_lists(job)
    return {'ready', job.workflow_id and ready_list(job.workflow_id, job.definition_version) or 'ready:dead'}
end

-- Sorted sets order by score and then by member, byte by byte: by priority, then by age, then by id.
local function ready_entry(job)
    return string.format('%015.0f:%s', job.created_at - FIRST_INSTANT, job.id)
end

local function id_of(entry)
    return string.sub(entry, 17)
end

local function unlist(job)
    for _, list in ipairs(ready_lists(job)) do
        redis.call('ZREM', prefix .. list, ready_entry(job))
    end
    for _, list in ipairs({'delayed', 'locks', 'starts'}) do
        redis.call('ZREM', prefix .. list, job.id)
    end
end

local function enlist(job)
    if job.status == 'RUNNING' then
        redis.call('ZADD', prefix .. 'locks', job.locked_at, job.id)
        redis.call('ZADD', prefix .. 'starts', job.started_at, job.id)
    elseif job.status == 'PENDING' and job.next_poll_at and tonumber(job.next_poll_at) > now then
        redis.call('ZADD', prefix .. 'delayed', job.next_poll_at, job.id)
    elseif job.status == 'PENDING' then
        for _, list in ipairs(ready_lists(job)) do
            redis.call('ZADD', prefix .. list, -job.priority, ready_entry(job))
        end
    end
end

-- Writes fields of a job; false stands for None.
local function write(job, fields)
    fields.updated_at = text(now)
    local present, absent = {}, {}
    for name, value in pairs(fields) do
        job[name] = value or nil
        if value then
            table.insert(present, name)
            table.insert(present, value)
        else
            table.insert(absent, name)
        end
    end
    redis.call('HSET', prefix .. 'job:' .. job.id, unpack(present))
    if #absent > 0 then
        redis.call('HDEL', prefix .. 'job:' .. job.id, unpack(absent))
    end
end

-- Writes fields of a stored job and moves it to where it belongs now.
local function change(job, fields)
    unlist(job)
    write(job, fields)
    enlist(job)
end

local function remove(job)
    unlist(job)
    redis.call('DEL', prefix .. 'job:' .. job.id)
end
