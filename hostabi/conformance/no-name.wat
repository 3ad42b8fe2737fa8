;; An environment without a name.
;; include guest
(data (i32.const 0x468) "\00")
