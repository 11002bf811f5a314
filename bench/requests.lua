-- Sends the requests listed in the file BENCH_CALLS, in turn: one a line, a path, a tab and a body.
-- Where BENCH_UNIQUE stands each request has a value of its own: BENCH_RUN and its number.
-- At the end, writes what was measured as one line of JSON. Everything comes from the environment.

local unique, run = os.getenv("BENCH_UNIQUE"), os.getenv("BENCH_RUN")

wrk.method = os.getenv("BENCH_METHOD")
wrk.headers["Authorization"] = "Bearer " .. os.getenv("BENCH_KEY")
if wrk.method == "POST" then
   wrk.headers["Content-Type"] = "application/json"
   wrk.headers["Idempotency-Key"] = unique
end

local calls = {}
for line in io.lines(os.getenv("BENCH_CALLS")) do
   local path, body = line:match("^([^\t]*)\t(.*)$")
   calls[#calls + 1] = { path = path, body = body ~= "" and body or nil }
end

-- The parts of a text between the places where the value goes.
local function split(text)
   local parts, from = {}, 1
   while true do
      local first, last = text:find(unique, from, true)
      parts[#parts + 1] = text:sub(from, (first or 0) - 1)
      if not first then
         return parts
      end
      from = last + 1
   end
end

if #calls == 1 and wrk.method == "GET" then
   -- wrk sends a request that never changes without calling Lua.
   wrk.path = calls[1].path
else
   local requests, sent = {}, 0

   init = function(args)
      for number, call in ipairs(calls) do
         requests[number] = split(wrk.format(nil, call.path, nil, call.body))
      end
   end

   request = function()
      sent = sent + 1
      local parts = requests[(sent - 1) % #requests + 1]
      return parts[2] and table.concat(parts, run .. string.format("%08d", sent)) or parts[1]
   end
end

done = function(summary, latency)
   local failed = summary.errors
   io.write(string.format(
      '\nBENCH {"requests": %d, "seconds": %.6f, "p50_ms": %.3f, "p90_ms": %.3f, "p99_ms": %.3f, ' ..
      '"max_ms": %.3f, "not_2xx": %d, "socket_errors": %d, "timeouts": %d}\n',
      summary.requests, summary.duration / 1e6,
      latency:percentile(50) / 1e3, latency:percentile(90) / 1e3, latency:percentile(99) / 1e3,
      latency.max / 1e3,
      failed.status, failed.connect + failed.read + failed.write, failed.timeout))
end
