import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ensureExtension, findExtensionSchema } from './extensions.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from './testing.ts'

describe.each(listTestEngines())('%s: an extension', (engine) => {
  let test: TestDatabase
  beforeAll(async () => {
    test = await createTestDatabase(engine)
  })
  afterAll(async () => test?.drop())

  it('is created once, whoever asks for it at the same time', async () => {
    const { database } = test
    expect(await findExtensionSchema(database, 'pg_trgm')).toBeUndefined()
    const both = [1, 2, 3].map(() => ensureExtension(database, 'pg_trgm'))
    expect(await Promise.all(both)).toEqual(['extensions', 'extensions', 'extensions'])
  })

  it('that the server lacks is refused with what to do', async () => {
    await expect(ensureExtension(test.database, 'no_such_thing')).rejects.toMatchObject({
      code: 'VALIDATION_FAILED',
      message: expect.stringMatching(
        /^\/index_type needs the extension no_such_thing, .* CREATE EXTENSION no_such_thing$/,
      ),
    })
  })
})
