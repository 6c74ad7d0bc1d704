// Where cards come from and decisions go: the server that sent this page.

const BY = crypto.getRandomValues(new Uint32Array(3)).join("-").slice(0, 40);

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify({ ...body, by: BY }) };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("the server does not answer; start oneof review again: nothing that was saved is lost");
  }
  const content = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (answer.status === 409) return { meanwhile: true, ...content };
  if (!answer.ok) throw new Error(content.error || `the server answered ${answer.status}`);
  return content;
}

export const source = {
  canLearn: true,
  facts: () => ask("api/facts"),
  status: () => ask("api/status"),
  queue: (filter, start, count) => ask(`api/queue?${new URLSearchParams({ ...filter, start, count })}`),
  card: (row) => ask(`api/card/${row}`),
  decide: (row, action, label, seen) => ask("api/decide", { row, action, label, seen }),
  undo: (row) => ask("api/undo", row === undefined ? {} : { row }),
  learn: () => ask("api/learn", {}),
  image: (row) => `image/${row}`,
};
