-- given: run_id. Answers with how many jobs it changed.

local cancelled = 0
for _, id in ipairs(redis.call('HVALS', prefix .. 'run:' .. given.run_id)) do
    local job = load(id)
    if job and (job.status == 'PENDING' or job.status == 'SUSPENDED') then
        change(job, {status = 'CANCELLED', completed_at = text(now)})
        cancelled = cancelled + 1
    end
end
return cjson.encode(cancelled)
