// Package js has a host of the environment ABI in JavaScript, for pages in a browser and for Node, and its test. It was written from
// docs/reference/env-abi.md alone, and passes the set of hostabi/conformance.
//
//	import { ABI, Env } from "./env.js";
//	const env = new Env(bytes, { envs: 2 });                 // of a module; a Refused says why it is not loaded
//	env.reset([1, 2]);                                       // seeds
//	env.act((tensor, env, agent, element) => 0);             // the actions of the next step
//	const { groups, over } = env.step();                     // rewards and flags; a Fault says what the guest does wrong
//	env.row(env.of("observation")[0], 0);                    // what environment 0 observes now
//	env.render(0, ABI.RENDER_TEXT);
//
// module.js looks at a module before it runs, spec.js reads a description, env.js steps environments, abi.js is generated from package
// hostabi. A guest that never returns is not stopped, and what a guest draws from WASI's random_get is this host's own.
//
// policy.js acts by a file of rlhost export --format wasm:
//
//	const policy = new Policy(file);
//	const action = policy.act(env);                          // of environment 0, group 0, agent 0
//	policy.did(action, reward);                              // after the step; policy.begin() begins an episode
//
// Bundle is all of it for a page of one file; package page makes pages of runs.
//
//	node sdk/js/conformance.js [CASE ...]
package js
