;; rl_reset fails with a status.
;; include memory
;; include describe
;; include alloc
;; include create
;; include bind
;; include place
;; include observe
;; include advance
;; include loop
(func $begin (param $env i32) ;; an episode goes on with the seed that there is
  (i32.store (call $state (local.get $env)) (i32.const 0))
  (i32.store offset=8 (call $state (local.get $env)) (i32.const 0)))
(func $state (param $env i32) (result i32)
  (i32.add (i32.const 0x3000) (i32.shl (local.get $env) (i32.const 4))))
(func $draw (param $env i32)
  (i32.store offset=4 (call $state (local.get $env))
    (i32.add (i32.mul (i32.load offset=4 (call $state (local.get $env))) (i32.const 5)) (i32.const 1))))
(func (export "rl_reset") (param $batch i32) (param $t i32) (param $mask i32) (param $seeds i32) (result i32)
  (local $env i32)
  (loop $next
    (block $done
      (if (local.get $mask)
        (then (br_if $done (i32.eqz (i32.load8_u (i32.add (local.get $mask) (local.get $env)))))))
      (if (local.get $seeds)
        (then (i32.store offset=4 (call $state (local.get $env))
                (i32.load (i32.add (local.get $seeds) (i32.shl (local.get $env) (i32.const 3))))))
        (else (call $draw (local.get $env))))
      (call $begin (local.get $env))
      (call $observe (i32.const 1) (local.get $t) (local.get $env)))
    (local.set $env (i32.add (local.get $env) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $env) (i32.load (i32.const 0x2f04)))))
  (i32.const -3))
