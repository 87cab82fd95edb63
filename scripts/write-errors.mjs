// Writes docs/errors.md from the error catalogue. Run with: tsx scripts/write-errors.mjs
import { writeFileSync } from 'node:fs'
import { renderErrorsPage } from '@tollbase/contract/errors-page'

writeFileSync(new URL('../docs/errors.md', import.meta.url), renderErrorsPage())
console.log('docs/errors.md written')
