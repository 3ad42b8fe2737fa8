;; An unknown flag of a port.
;; include guest
;; include slot
(data (i32.const 0x46c) "\04")
