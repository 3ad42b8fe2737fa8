// Package plugintest holds environments that do as they are told, and the suite that the environments of every
// runtime must pass.
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
// A scripted environment is plain Go over block memory. What it observes says which environment, episode and step
// it is, so that whoever finds a row where it does not belong can tell. It is for tests alone: it is not a runtime
// and nothing in it is fast.
package plugintest
