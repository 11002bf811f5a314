-- Sends the requests listed in the file BENCH_CALLS, in turn: one a line, a path, a tab and a body.
-- At the end, writes what was measured as one line of JSON. Everything comes from the environment.

wrk.method = os.getenv("BENCH_METHOD")
wrk.headers["Authorization"] = "Bearer " .. os.getenv("BENCH_KEY")
if wrk.method == "POST" then
   wrk.headers["Content-Type"] = "application/json"
end

local calls = {}
for line in io.lines(os.getenv("BENCH_CALLS")) do
   local path, body = line:match("^([^\t]*)\t(.*)$")
   calls[#calls + 1] = { path = path, body = body ~= "" and body or nil }
end

if #calls == 1 then
   -- wrk sends a request that never changes without calling Lua.
   wrk.path = calls[1].path
   wrk.body = calls[1].body
else
   local requests, at = {}, 0

   init = function(args)
      for number, call in ipairs(calls) do
         requests[number] = wrk.format(nil, call.path, nil, call.body)
      end
   end

   request = function()
      at = at % #requests + 1
      return requests[at]
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
