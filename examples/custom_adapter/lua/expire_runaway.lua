-- given: absolute_timeout (milliseconds), error. Answers with how many jobs it changed.

local expired = 0
local before = '(' .. text(now - given.absolute_timeout)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'starts', '-inf', before)) do
    local job = load_listed('starts', id, id)
    if job then
        change(job, {status = 'FAILED', completed_at = text(now), last_error = given.error})
        expired = expired + 1
    end
end
return cjson.encode(expired)
