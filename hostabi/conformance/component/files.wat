;; There are no files: path_open finds no folder.
;; include files
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (if (i32.eqz (call $path_open (i32.const 3) (i32.const 0) (i32.const 0x3400) (i32.const 6) (i32.const 0) (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 0x3500)))
    (then (unreachable)))
  (i32.const 0))
