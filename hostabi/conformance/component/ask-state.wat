;; What a request has changed is in the state.
;; include asking
;; include state
(func (export "rl_restore") (param $state i32) (param $len i32) (result i32)
  (global.set $messages (i32.load (local.get $state)))
  (i32.const 0))
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (i32.store8 (local.get $buf) (i32.add (i32.const 48) (global.get $messages)))
  (i32.const 1))
