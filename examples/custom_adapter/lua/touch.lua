-- given: job_id.

local job = load(given.job_id)
if job and job.status == 'RUNNING' then
    change(job, {locked_at = text(now)})
end
return 'null'
