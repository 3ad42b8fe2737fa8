;; rl_answer gets the number that ask has returned, the index of the ask, and the answer as JSON; it may emit.
;; include asker
;; include asksone
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32)
  (call $same (i32.const 1) (i32.load (local.get $answer)) (i32.const 64))
  (call $same (i32.const 2) (i32.load offset=4 (local.get $answer)) (global.get $asked))
  (call $same (i32.const 3) (i32.load offset=8 (local.get $answer)) (i32.const 0))
  (call $same (i32.const 4) (i32.load offset=12 (local.get $answer)) (i32.const 0))
  (call $same (i32.const 5) (i32.add (i32.load offset=16 (local.get $answer)) (i32.load offset=20 (local.get $answer))) (local.get $len))
  (call $same (i32.const 6) (i32.add (i32.load offset=28 (local.get $answer)) (i32.load offset=36 (local.get $answer))) (i32.const 0))
  (call $same (i32.const 7) (i32.and (local.get $answer) (i32.const 7)) (i32.const 0))
  (call $shown (local.get $answer))
  (i32.const 0))
