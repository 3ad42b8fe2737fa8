;; Figures of environments by index, gathered over an episode as their flag says: 0 the last, else sum, mean, max or min.
(import "rl" "metric_env" (func $metric (param i32 i32 i32 f64 i32)))
;; include memory
;; include describe
;; include alloc
;; include create
;; include bind
;; include reset

;; include place
;; include observe
;; include advance
(data (i32.const 0x1000) "last" "sum_" "mean" "max_" "min_" "none")
(func (export "rl_step") (param $batch i32) (param $t i32) (result i32)
  (local $env i32) (local $status i32) (local $value f64)
  (local.set $status (call $ready (local.get $t) (i32.const 0) (i32.load (i32.const 0x2f04))))
  (if (local.get $status) (then (return (local.get $status))))
  (loop $next
    (local.set $value (f64.convert_i32_s (i32.add (i32.load (call $state (local.get $env))) (i32.mul (i32.const 10) (local.get $env)))))
    (call $metric (local.get $env) (i32.const 0x1000) (i32.const 4) (local.get $value) (i32.const 0))
    (call $metric (local.get $env) (i32.const 0x1004) (i32.const 4) (local.get $value) (i32.const 0x2000))
    (call $metric (local.get $env) (i32.const 0x1008) (i32.const 4) (local.get $value) (i32.const 0x4000))
    (call $metric (local.get $env) (i32.const 0x100c) (i32.const 4) (local.get $value) (i32.const 0x8000))
    (call $metric (local.get $env) (i32.const 0x1010) (i32.const 4) (local.get $value) (i32.const 0x10000))
    (call $metric (local.get $env) (i32.const 0x1014) (i32.const 4) (local.get $value) (i32.const 0x6000)) ;; two at once: left out
    (call $metric (i32.const -1) (i32.const 0x1014) (i32.const 4) (local.get $value) (i32.const 0))           ;; of no environment: left out
    (call $metric (i32.const 1000) (i32.const 0x1014) (i32.const 4) (local.get $value) (i32.const 0))
    (local.set $status (call $advance (local.get $t) (local.get $env)))
    (if (local.get $status) (then (return (local.get $status))))
    (local.set $env (i32.add (local.get $env) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $env) (i32.load (i32.const 0x2f04)))))
  (i32.const 0))
