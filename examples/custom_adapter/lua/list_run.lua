-- given: run_id. Answers with the fields of each job, in no order.

local jobs = {}
for _, id in ipairs(redis.call('HVALS', prefix .. 'run:' .. given.run_id)) do
    local fields = fields_of(id)
    if fields then
        table.insert(jobs, fields)
    end
end
return cjson.encode(jobs)
