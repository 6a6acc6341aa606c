const AGENT = "cline"
const LIMIT_MS = 1_200 // Cline waits three seconds for a hook
const WRITING = ["editor", "apply_patch"]

// Cline runs a plugin in a process of its own for each session, and ends it with SIGTERM.
let session = ""
let starting = Promise.resolve("")
const tell = (event, fields) => run(event, { session_id: session, cwd: process.cwd(), ...fields })

const readLast = (messages, who) => {
  const said = messages?.findLast(({ role, metadata }) => role === who && metadata?.displayRole !== "system")
  const texts = (said?.content ?? []).filter((part) => part.type === "text").map((part) => part.text)
  return texts.join("\n")
}

const readPrompt = (messages) => {
  const text = readLast(messages, "user")
  return /<user_input[^>]*>([^]*?)<\/user_input>/.exec(text)?.[1] ?? text
}

const ofUser = (snapshot) => session && !snapshot.parentAgentId

export default {
  name: "memoryd",
  manifest: { capabilities: ["hooks"] },
  setup(api, context) {
    session = context?.session?.sessionId ?? ""
    if (!session) return
    starting = tell("session-start", { source: "startup" })
    process.on("SIGTERM", () => tell("session-end").then(() => process.exit(0)))
  },
  hooks: {
    beforeRun: async ({ snapshot }) => {
      if (!ofUser(snapshot)) return
      const start = await starting
      starting = ""
      const text = [start, await tell("prompt", { prompt: readPrompt(snapshot.messages) })].filter(Boolean).join("\n")
      return text ? { appendContext: text } : undefined
    },
    afterTool: async ({ snapshot, toolCall, input }) => {
      if (!ofUser(snapshot) || !WRITING.includes(toolCall?.toolName)) return
      await tell("tool", { tool_input: { path: input?.path, command: input?.input } })
    },
    afterRun: async ({ snapshot }) => {
      if (ofUser(snapshot)) await tell("stop", { last_assistant_message: readLast(snapshot.messages, "assistant") })
    },
  },
}
