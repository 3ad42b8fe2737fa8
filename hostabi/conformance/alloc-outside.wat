;; rl_alloc gives memory that ends behind the memory that there is.
;; include memory
;; include describe
;; include create
;; include bind
;; include reset
;; include step
(func (export "rl_alloc") (param $size i32) (param $align i32) (result i32) (i32.const 0x7fff0000))
(func (export "rl_free") (param i32 i32))
