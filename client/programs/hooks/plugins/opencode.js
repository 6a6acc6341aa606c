const AGENT = "opencode"
const LIMIT_MS = 10_000
const WRITING = ["write", "edit", "multiedit", "patch", "apply_patch"]

const listTexts = (parts) =>
  parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored).map((part) => part.text)

export const Memoryd = async ({ client, directory }) => {
  const due = new Map() // by session: why it is to be told what a session begins with; "" once it was
  const noted = new Map() // by session: the latest answer that was noted
  let latest = Promise.resolve()
  const tell = (event, id, fields) => run(event, { session_id: id, cwd: directory, ...fields })

  const isOfUser = async (id) => {
    try {
      return due.has(id) || !(await client.session.get({ path: { id } })).data.parentID
    } catch {
      return false
    }
  }

  const noteAnswer = async (id) => {
    try {
      const { data } = await client.session.messages({ path: { id } })
      const { info, parts } = data.findLast(({ info }) => info.role === "assistant" && !info.summary)
      if (noted.get(id) === info.id) return
      noted.set(id, info.id)
      await tell("stop", id, { last_assistant_message: listTexts(parts).at(-1) ?? "" })
    } catch {}
  }

  return {
    config: async (config) => {
      config.mcp = { memoryd: { type: "local", command: [...COMMAND, "mcp"] }, ...config.mcp }
    },
    "chat.message": async ({ sessionID: id }, { message, parts }) => {
      if (!parts.length || !(await isOfUser(id))) return
      const source = due.get(id) ?? "startup"
      due.set(id, "")
      const start = source && (await tell("session-start", id, { source }))
      const text = [start, await tell("prompt", id, { prompt: listTexts(parts).join("\n") })].filter(Boolean).join("\n")
      const place = { id: `${parts.at(-1).id}m`, sessionID: id, messageID: message.id } // in the order of ids: the last
      if (text) parts.push({ ...place, type: "text", text, synthetic: true })
    },
    "tool.execute.after": async ({ tool, sessionID: id, args }) => {
      const written = { file_path: args?.filePath, command: args?.patchText }
      if (due.has(id) && WRITING.includes(tool)) await tell("tool", id, { tool_input: written })
    },
    event: async ({ event: { type, properties } }) => {
      const id = properties?.sessionID ?? properties?.info?.id
      if (!due.has(id)) return
      if (type === "session.idle") latest = noteAnswer(id)
      if (type === "session.compacted") {
        due.set(id, "compact")
        latest = tell("compact", id)
      }
      if (type === "session.deleted") {
        due.delete(id)
        latest = tell("session-end", id)
      }
    },
    dispose: async () => {
      await latest
      await Promise.all([...due.keys()].map((id) => tell("session-end", id)))
    },
  }
}
