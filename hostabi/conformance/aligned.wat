;; Pointers to records, seeds and bindings are multiples of 8; what rl_alloc is asked for is aligned by a power of two up to 65,536.
;; include memory
;; include describe
;; include create
;; include step
(func $eight (param $at i32) (if (i32.and (local.get $at) (i32.const 7)) (then (unreachable))))
;; Memory is given from the heap on and never taken back.
(func (export "rl_alloc") (param $size i32) (param $align i32) (result i32)
  (local $at i32)
  (if (i32.ne (i32.popcnt (local.get $align)) (i32.const 1)) (then (unreachable)))
  (if (i32.gt_u (local.get $align) (i32.const 65536)) (then (unreachable)))
  (local.set $at (i32.and (i32.sub (i32.add (global.get $heap) (local.get $align)) (i32.const 1))
                          (i32.sub (i32.const 0) (local.get $align))))
  (global.set $heap (i32.add (local.get $at) (local.get $size)))
  (block $enough
    (loop $grow
      (br_if $enough (i32.ge_u (i32.shl (memory.size) (i32.const 16)) (global.get $heap)))
      (br_if $grow (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))
      (return (i32.const 0))))
  (local.get $at))
(func (export "rl_free") (param i32 i32))
(func (export "rl_host") (param $host i32) (param $len i32) (result i32)
  (call $eight (local.get $host))
  (i32.const 0))
(func (export "rl_bind") (param $batch i32) (param $bindings i32) (param $n i32) (result i32)
  (call $eight (local.get $bindings))
  (memory.copy (i32.const 0x2000) (local.get $bindings) (i32.mul (local.get $n) (i32.const 48)))
  (i32.const 0))
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
  (call $eight (local.get $seeds))
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
  (i32.const 0))
