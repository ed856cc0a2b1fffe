-- given: stale_after (milliseconds), fail_spent, error. Answers with how many jobs it changed.

local released = 0
for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'locks', '-inf', '(' .. text(now - given.stale_after))) do
    local job = load_listed('locks', id, id)
    if job and given.fail_spent and tonumber(job.attempt) >= tonumber(job.max_attempts) then
        change(job, {status = 'FAILED', completed_at = text(now), last_error = given.error})
        released = released + 1
    elseif job then
        change(job, {status = 'PENDING', worker_id = false, locked_at = false, last_error = given.error})
        released = released + 1
    end
end
return cjson.encode(released)
