;; An upper bound that is NaN.
;; include guest
(data (i32.const 0x508) "\04\00\00\00") ;; flags
(data (i32.const 0x524) "\00\00\00\00") ;; low
(data (i32.const 0x528) "\00\00\c0\7f") ;; high
