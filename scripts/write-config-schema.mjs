// Writes docs/tollbase.config.schema.json from ConfigFile. Run with: tsx scripts/write-config-schema.mjs
import { writeFileSync } from 'node:fs'
import { buildConfigSchema } from '@tollbase/server/config/config-file'

const target = new URL('../docs/tollbase.config.schema.json', import.meta.url)
const schema = buildConfigSchema()
writeFileSync(target, `${JSON.stringify(schema, null, 2)}\n`)
console.log(
  `${Object.keys(schema.properties).length} fields written to docs/tollbase.config.schema.json`,
)
