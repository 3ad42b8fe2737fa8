// Package plugintest holds scripted environments and a probe component, and the suites that the environments
// and the components of every runtime must pass.
//
//	p := plugintest.New(plugintest.Script{
//		Length: func(env, episode int) int { return 3 + env },
//		Cue: func(at plugintest.At) plugintest.Cue {
//			if at.Env == 17 && at.Calls == 40112 {
//				return plugintest.Trap
//			}
//			return plugintest.Nothing
//		},
//	})
//
//	func TestCartPole(t *testing.T) { plugintest.TestEnv(t, cartPole, plugintest.Options{}) }
//
// Components of every runtime pass another suite, with a probe that each has in its language:
//
//	plugintest.TestRuntime(t, plugintest.RuntimeHarness{New: probe})
//
// A scripted environment is plain Go over block memory. Its observations contain environment, episode and step, so that
// a misplaced row is recognised. It is for tests alone: it is not a runtime and nothing in it is fast.
package plugintest
