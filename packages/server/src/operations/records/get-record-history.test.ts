import { limits } from '@tollbase/contract/limits'
import { createData } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('getRecordHistory', (service) => {
  test('a deleted record is hidden, its history is not, and it can come back', async () => {
    const app = await createData(service())
    await app.store('notes', [{ id: 'a', v: 1 }])
    await app.store('notes', [{ id: 'a', v: 2 }])
    await app.store('notes', [{ id: 'a', v: 3, deleted: true }])
    expect((await app.list('notes')).body).toMatchObject({ records: [], total: 0 })
    expect(await app.record('notes', 'a')).toMatchObject({
      status: 404,
      body: { code: 'RECORD_NOT_FOUND' },
    })
    const history = await app.record('notes', 'a', '/history')
    const seen = history.body.versions.map(
      ({ record, deleted }: { record: { v: number }; deleted: boolean }) => [record.v, deleted],
    )
    expect(seen).toEqual([
      [1, false],
      [2, false],
      [3, true],
    ])
    const all = await app.list('notes', { include_history: true })
    expect(all.body.total).toBe(3)
    await app.store('notes', [{ id: 'a', v: 4 }])
    expect((await app.list('notes')).body.records).toEqual([{ id: 'a', v: 4 }])
    expect((await app.record('notes', 'none', '/history')).status).toBe(404)
  })

  test('a history of more bytes than an answer may have is refused with what to do, and one of fewer is whole', async () => {
    const app = await createData(service())
    const text = 'x'.repeat(limits.recordBytesMax - 1024)
    const most = Math.floor(limits.resultBytesMax / (text.length + 20))
    for (let v = 0; v < most; v++) await app.store('notes', [{ id: 'a', v, text }])
    const whole = await app.record('notes', 'a', '/history')
    expect(whole.body.versions).toHaveLength(most)
    await app.store('notes', [{ id: 'a', v: most, text }])
    expect(await app.record('notes', 'a', '/history')).toMatchObject({
      status: 413,
      body: { code: 'RESULT_TOO_LARGE', error: expect.stringContaining('/changes') },
    })
  })

  test('a history ends where it says that it was read, whatever is written meanwhile', async () => {
    const app = await createData(service())
    await app.store('notes', [{ id: 'a', n: 0 }])
    let isOver = false
    const writing = (async () => {
      for (let n = 1; !isOver; n++) await app.queue('notes', [{ id: 'a', n }])
    })()
    const looks = []
    for (let look = 0; look < 60; look++)
      looks.push((await app.record('notes', 'a', '/history')).body)
    isOver = true
    await writing
    const ends = looks.map(({ versions }) => versions.at(-1).block_height)
    expect(ends).toEqual(looks.map(({ as_of }) => as_of.block_height))
  })
})
