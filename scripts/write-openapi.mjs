// Writes docs/openapi.json and docs/view-query.schema.json from the contract. Run with: tsx scripts/write-openapi.mjs
import { writeFileSync } from 'node:fs'
import { interfaceVersion, tollbase } from '@tollbase/contract/contract'
import { buildOpenApi } from '@tollbase/contract/openapi'
import { buildViewQuerySchema } from '@tollbase/contract/view-definition'

const target = new URL('../docs/openapi.json', import.meta.url)
const document = buildOpenApi(tollbase, { version: interfaceVersion })
writeFileSync(target, `${JSON.stringify(document, null, 2)}\n`)
console.log(`${Object.keys(document.paths).length} paths written to docs/openapi.json`)

const grammar = new URL('../docs/view-query.schema.json', import.meta.url)
writeFileSync(grammar, `${JSON.stringify(buildViewQuerySchema(), null, 2)}\n`)
