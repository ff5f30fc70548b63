// A page over AG-UI's own client: it shows the agent's messages and interrupts, with a button for each answer.
import { HttpAgent, randomUUID } from "@ag-ui/client";

const agent = new HttpAgent({ url: "/chat" });
const root = document.getElementById("root");
const main = root.appendChild(document.createElement("main"));
const input = root.appendChild(document.createElement("input"));
input.setAttribute("aria-label", "Message");

function add(parent, tag, text, data = {}) {
  const made = parent.appendChild(document.createElement(tag));
  made.textContent = text;
  Object.assign(made.dataset, data);
  return made;
}

function show(problem = "") {
  main.replaceChildren();
  for (const message of agent.messages) {
    const text = typeof message.content === "string" ? message.content : JSON.stringify(message.content ?? "");
    add(main, "p", text, { role: message.role });
    for (const call of message.toolCalls ?? []) {
      add(main, "code", call.function.arguments, { tool: call.function.name });
    }
  }
  for (const interrupt of agent.pendingInterrupts) {
    add(main, "pre", interrupt.message);
    const answer = (payload) => () => run([{ interruptId: interrupt.id, status: "resolved", payload }]);
    add(main, "button", "Approve").onclick = answer({ approved: true });
    add(main, "button", "Deny").onclick = answer({ approved: false, reason: "too far" });
  }
  if (problem) add(main, "strong", problem);
}

async function run(resume) {
  let problem = "";
  try {
    const listener = { onMessagesChanged: () => show(), onRunErrorEvent: ({ event }) => (problem = event.message) };
    await agent.runAgent(resume ? { resume } : {}, listener);
  } catch (error) {
    problem = error.message;
  }
  show(problem);
}

input.onkeydown = (event) => {
  if (event.key !== "Enter") return;
  agent.addMessage({ id: randomUUID(), role: "user", content: input.value });
  input.value = "";
  run();
};
show();
