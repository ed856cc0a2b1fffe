-- given.jobs: the fields of each, one job per pair, in the order in which they are to be claimed. Returns their ids.

local last_id = redis.call('INCRBY', prefix .. 'last_id', #given.jobs) - #given.jobs
local ids = {}
for i, fields in ipairs(given.jobs) do
    local run = prefix .. 'run:' .. fields.workflow_run_id
    local stored = redis.call('HGET', run, fields.stage_id)
    local replaced = stored and load(stored)
    if replaced then
        remove(replaced)
    end

    local job = {id = string.format('%016.0f', last_id + i)}
    ids[i] = job.id
    redis.call('HSET', run, fields.stage_id, job.id)
    fields.created_at = text(now)
    write(job, fields)
    enlist(job)
end
return cjson.encode(ids)
