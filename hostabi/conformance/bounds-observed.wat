;; An observation outside of its bounds: a host may say so, and runs the guest.
;; include guest
(data (i32.const 0x508) "\04\00\00\00") ;; flags
(data (i32.const 0x524) "\00\00\00\00") ;; low
(data (i32.const 0x528) "\00\00\00\3f") ;; high
