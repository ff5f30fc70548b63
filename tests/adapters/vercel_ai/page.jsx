// A chat as the AI SDK's documentation builds one: useChat, its parts, and a button for each answer.
import { useChat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from "ai";
import { useState } from "react";
import { createRoot } from "react-dom/client";

function Tool({ part, answer }) {
  return (
    <div data-tool={getToolName(part)} data-state={part.state}>
      <code>{JSON.stringify(part.input)}</code>
      {part.state === "approval-requested" && (
        <>
          <pre>{part.approval.requestReason}</pre>
          <button onClick={() => answer({ id: part.approval.id, approved: true })}>Approve</button>
          <button onClick={() => answer({ id: part.approval.id, approved: false, reason: "too far" })}>Deny</button>
        </>
      )}
      {part.state === "output-available" && <output>{JSON.stringify(part.output)}</output>}
      {part.state === "output-error" && <em>{part.errorText}</em>}
    </div>
  );
}

function Chat() {
  const [text, setText] = useState("");
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    transport: new DefaultChatTransport({ api: "/chat" }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  return (
    <main data-status={status}>
      {messages.map((message) => (
        <section key={message.id} data-role={message.role}>
          {message.parts.map((part, index) =>
            part.type === "text" ? (
              <p key={index}>{part.text}</p>
            ) : part.type === "file" ? (
              <img key={index} src={part.url} alt="file" />
            ) : isToolUIPart(part) ? (
              <Tool key={index} part={part} answer={addToolApprovalResponse} />
            ) : null,
          )}
        </section>
      ))}
      {error && <strong>{error.message}</strong>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          sendMessage({ text });
          setText("");
        }}
      >
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
      </form>
    </main>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
