;; A payload whose name is not snake_case.
;; include guest
;; include slot
(data (i32.const 0x5b5) "T")
