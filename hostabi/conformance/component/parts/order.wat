(global $stage (mut i32) (i32.const 0))
;; next goes from one stage of life to another, and traps if it is not that of before.
(func $next (param $number i32) (param $from i32) (param $to i32) (result i32)
  (call $same (local.get $number) (global.get $stage) (local.get $from))
  (global.set $stage (local.get $to))
  (i32.const 0))
