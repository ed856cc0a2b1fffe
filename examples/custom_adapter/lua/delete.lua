-- given: run_id, stage_ids. Answers with how many jobs there were.

local deleted = 0
for _, stage_id in ipairs(given.stage_ids) do
    local run = prefix .. 'run:' .. given.run_id
    local id = redis.call('HGET', run, stage_id)
    local job = id and load(id)
    if job then
        remove(job)
        deleted = deleted + 1
    end
    redis.call('HDEL', run, stage_id)
end
return cjson.encode(deleted)
