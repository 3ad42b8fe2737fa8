;; A host that steps parts of a batch steps every environment once for each t, whatever the parts.
;; include guest

(func (export "rl_step_range") (param $batch i32) (param $t i32) (param $first i32) (param $count i32) (result i32)
  (local $status i32)
  (if (i32.gt_u (i32.add (local.get $first) (local.get $count)) (i32.load (i32.const 0x2f04))) (then (return (i32.const -1))))
  (local.set $status (call $ready (local.get $t) (local.get $first) (local.get $count)))
  (if (local.get $status) (then (return (local.get $status))))
  (block $done
    (loop $next
      (br_if $done (i32.eqz (local.get $count)))
      (local.set $status (call $advance (local.get $t) (local.get $first)))
      (if (local.get $status) (then (return (local.get $status))))
      (local.set $first (i32.add (local.get $first) (i32.const 1)))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (br $next)))
  (i32.const 0))
