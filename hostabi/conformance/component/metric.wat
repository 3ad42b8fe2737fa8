;; declare makes a number known, the same again is the same; report gives it values.
;; include granted
;; include guest
(data (i32.const 0x3430) "conforms/countconforms/sizeconforms/kind")(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 1) (call $declare (i32.const 1) (i32.const 0x3430) (i32.const 14)) (i32.const 0))
  (call $same (i32.const 2) (call $declare (i32.const 2) (i32.const 0x343e) (i32.const 13)) (i32.const 1))
  (call $same (i32.const 3) (call $declare (i32.const 3) (i32.const 0x344b) (i32.const 13)) (i32.const 2))
  (call $same (i32.const 4) (call $declare (i32.const 1) (i32.const 0x3430) (i32.const 14)) (i32.const 0))
  (call $report (i32.const 0) (f64.const 3))
  (call $report (i32.const 1) (f64.const 2.5))
  (call $report (i32.const 2) (f64.const 8))
  (call $report (i32.const 3) (f64.const 8)) ;; none
  (call $report (i32.const 0) (f64.const -1)) ;; a counter takes numbers from 0 up
  (call $report (i32.const 0) (f64.const nan))
  (i32.const 0))
