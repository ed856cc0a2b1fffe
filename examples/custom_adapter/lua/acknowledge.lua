-- given: ending, what that needs, claims (job_id; started_at and attempt where there is a fence). Answers with an
-- outcome for each claim, in order: acknowledged, superseded, or unknown for a job that is not there and has no fence.

local function given_back(fields)
    fields.worker_id = false
    fields.locked_at = false
    return fields
end

local endings = {}

function endings.complete()
    return {status = 'COMPLETED', completed_at = text(now)}
end

function endings.suspend()
    return given_back({status = 'SUSPENDED', next_poll_at = given.next_poll_at})
end

function endings.fail(job)
    local attempt = tonumber(job.attempt)
    if not given.should_retry or attempt >= tonumber(job.max_attempts) then
        return {status = 'FAILED', completed_at = text(now), last_error = given.error}
    end
    local delay = given.base_ms == 0 and 0 or math.floor(math.min(given.base_ms * given.factor ^ attempt, given.cap_ms))
    local due_at = text(math.min(now + delay, LAST_INSTANT))
    return given_back({status = 'PENDING', next_poll_at = due_at, last_error = given.error})
end

function endings.defer(job)
    local attempt = text(math.max(0, job.attempt - 1))
    return given_back({
        status = 'PENDING', next_poll_at = given.next_poll_at, attempt = attempt, last_error = given.reason,
    })
end

function endings.heartbeat()
    return {locked_at = text(now)}
end

local function holds(job, claim)
    return job.status == 'RUNNING' and job.started_at == claim.started_at and job.attempt == claim.attempt
end

local outcomes = {}
for i, claim in ipairs(given.claims) do
    local job = load(claim.job_id)
    if claim.started_at and not (job and holds(job, claim)) then
        outcomes[i] = 'superseded'
    elseif not job then
        outcomes[i] = 'unknown'
    else
        change(job, endings[given.ending](job))
        outcomes[i] = 'acknowledged'
    end
end
return cjson.encode(outcomes)
