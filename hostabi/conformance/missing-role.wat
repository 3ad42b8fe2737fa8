;; An environment without rewards.
;; include guest
(data (i32.const 0x580) "\84\03")
