import { execFile } from "node:child_process"

const COMMAND = ["memctl"]

// Hand an event to `memctl hook`; return the text that it answers, "" for none. It never fails, and ends by itself:
// past the limit only its answer is not waited for.
const run = (event, given) =>
  new Promise((resolve) => {
    try {
      setTimeout(() => resolve(""), LIMIT_MS).unref()
      const words = [...COMMAND.slice(1), "hook", event, "--agent", AGENT]
      const child = execFile(COMMAND[0], words, (error, out) => {
        try {
          resolve(JSON.parse(out).hookSpecificOutput.additionalContext)
        } catch {
          resolve("")
        }
      })
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(given))
    } catch {
      resolve("")
    }
  })

