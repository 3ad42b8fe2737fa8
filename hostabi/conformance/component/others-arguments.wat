;; ask refuses a number that is no ask of the manifest, arguments outside of the memory or that are too long, and a time below 0.
;; include asker
;; include configure
;; include start
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (call $same (i32.const 1) (call $ask (i32.const 2) (i32.const 0x3440) (i32.const 8) (i64.const 0)) (i32.const -1))
  (call $same (i32.const 2) (call $ask (i32.const 0) (i32.const 0x7ffffff0) (i32.const 8) (i64.const 0)) (i32.const -1))
  (call $same (i32.const 3) (call $ask (i32.const 0) (i32.const 0) (i32.const 122881) (i64.const 0)) (i32.const -1))
  (call $same (i32.const 4) (call $ask (i32.const 0) (i32.const 0x3440) (i32.const 8) (i64.const -1)) (i32.const -1))
  (call $same (i32.const 5) (call $ask (i32.const 0) (i32.const 0x3440) (i32.const -1) (i64.const 0)) (i32.const -1))
  (drop (call $note (i64.const 6)))
  (i32.const 0))
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32) (unreachable))
