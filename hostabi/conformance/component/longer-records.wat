;; Every record is longer than version 1 has it: the host does not look at what it does not know, and what it writes there is 0.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include configure
;; include longer
;; include start
;; include describe
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same64 (i32.const 1) (i64.load offset=64 (local.get $message)) (i64.const 0))
  (call $same64 (i32.const 2) (i64.load offset=64 (i32.load offset=4 (local.get $message))) (i64.const 0))
  (call $same (i32.const 3) (i32.load offset=20 (i32.load offset=4 (local.get $message))) (i32.const 2)) ;; rows
  (call $same (i32.const 4) (i32.load offset=92 (i32.load offset=4 (local.get $message))) (i32.const 3)) ;; rows of the second binding, 72 bytes on
  (drop (call $emit (i32.const 0) (local.get $message)))
  (i32.const 0))
