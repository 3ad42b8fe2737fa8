;; An unknown flag of the component.
;; include guest
;; include slot
(data (i32.const 0x42c) "\02")
