// An OpenID provider of npm (oidc-provider), for the tests: people log in by their name, with any password.
// Arguments: the path of the package, the port, and a JSON object of the people's claims by name, with the client.
import { pathToFileURL } from "node:url";

const [, , module, port, given] = process.argv;
const { people, clients } = JSON.parse(given);
const { default: Provider } = await import(pathToFileURL(module));

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients,
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["groups"] },
  conformIdTokenClaims: false,
  cookies: { keys: ["tests"] },
  features: { devInteractions: { enabled: true } },
  findAccount: (_, id) => people[id] && { accountId: id, claims: () => ({ sub: id, ...people[id] }) },
  pkce: { required: () => true },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listening"));
