import { readFileSync } from 'node:fs'
import { buildConfigSchema, parseConfigFile } from '@tollbase/server/config/config-file'
import { describe, expect, test } from 'vitest'

describe('the schema of the configuration file', () => {
  test('docs/tollbase.config.schema.json is that of the code; scripts/write-config-schema.mjs writes it anew', () => {
    const file = new URL('../../docs/tollbase.config.schema.json', import.meta.url)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(
      JSON.parse(JSON.stringify(buildConfigSchema())),
    )
  })

  test('every field says what it is for, or is an object of such fields', () => {
    for (const [name, field] of Object.entries(buildConfigSchema().properties)) {
      const described = 'description' in field || 'items' in field || name === '$schema'
      expect(described, name).toBe(true)
    }
  })

  test('a file may name its schema', () => {
    const text = JSON.stringify({ $schema: './docs/tollbase.config.schema.json', port: 0 })
    expect(parseConfigFile(text, 'tollbase.config.json').port).toBe(0)
  })
})
