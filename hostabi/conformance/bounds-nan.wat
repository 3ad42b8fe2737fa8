;; A bound that is NaN.
;; include guest
(data (i32.const 0x508) "\04") ;; bounds on both sides
(data (i32.const 0x524) "\00\00\c0\7f")
