/** The service's JSON API. Every failure becomes an `ApiError` that can be shown as it is. */

const ROOT = "api/v1/";

/** A failure, with a message for people. */
export class ApiError extends Error {
  constructor(code, message, near = []) {
    super(message);
    this.code = code;
    this.near = near;
  }
}

export const model = (signal) => get("model", {}, signal);
export const relations = (signal) => get("relations", {}, signal);
export const entities = (text, signal) => get("entities", { text, limit: 8 }, signal);
export const rules = (choice, signal) => get("rules", choice, signal);
export const rulePicture = (number) => getText(`rules/${number}/picture.svg`);
export const predict = (query, signal) => post("predict", query, signal);
export const when = (query, signal) => post("when", query, signal);
export const explain = (query, signal) => post("explain", query, signal);
export const groundingPicture = (grounding) => postForText("picture", grounding);
export const data = (signal) => get("data", {}, signal);
export const facts = (choice, signal) => get("facts", choice, signal);

async function get(path, choice, signal) {
  const given = Object.entries(choice).filter(
    ([, value]) => value !== "" && value !== null && value !== undefined,
  );
  const search = new URLSearchParams(given).toString();
  const response = await request(search ? `${path}?${search}` : path, { signal });
  return response.json();
}

async function getText(path) {
  const response = await request(path);
  return response.text();
}

async function post(path, body, signal) {
  const response = await request(path, { ...asJson(body), signal });
  return response.json();
}

async function postForText(path, body) {
  const response = await request(path, asJson(body));
  return response.text();
}

function asJson(body) {
  const headers = { "content-type": "application/json" };
  return { method: "POST", headers, body: JSON.stringify(body) };
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(ROOT + path, options);
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new ApiError("gone", "The server does not answer. Is `tilp serve` still running?");
  }
  if (response.ok) return response;
  throw await readError(response);
}

async function readError(response) {
  try {
    const { code, message, near } = (await response.json()).error;
    return new ApiError(code, message, near ?? []);
  } catch {
    return new ApiError(
      "strange",
      `The server answered with status ${response.status} and no reason.`,
    );
  }
}
