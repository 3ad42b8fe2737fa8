;; What cases about questions to others are made from: they add rl_slot and rl_answer.
(import "rl_component" "ask" (func $ask (param i32 i32 i32 i64) (result i32)))
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include othersask
(data (i32.const 0x3440) "{\"n\": 5}")
(global $asked (mut i32) (i32.const 0)) ;; the newest question
;; total asks the first question.
(func $total (result i32)
  (global.set $asked (call $ask (i32.const 0) (i32.const 0x3440) (i32.const 8) (i64.const 0)))
  (global.get $asked))
;; shown notes the first byte of the text of an answer.
(func $shown (param $answer i32)
  (drop (call $note (i64.extend_i32_u (i32.load8_u (i32.add (local.get $answer) (i32.load offset=16 (local.get $answer))))))))
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (i32.store8 (local.get $buf) (i32.add (i32.const 48) (call $total)))
  (i32.const 1))
