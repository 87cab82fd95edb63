import { readFileSync } from 'node:fs'
import { drive, httpRequest, noFailure } from './load.ts'
import { openPlace, startOurs, createApplication, createCollection, app } from './place.ts'
import { item, storeBody } from './documents.ts'
import { once } from './load.ts'
const cpu = (pid: number) => { const f = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []; return (Number(f[11]) + Number(f[12])) * 10 }
const place = await openPlace()
const ours = await startOurs(place, { nodeOptions: process.argv[2] ? process.argv.slice(2) : [] })
const key = await createApplication(ours.port)
await createCollection(ours.port, { key, name: 'items' })
for (let at = 0; at < 10; at++) await once(ours.port, httpRequest('/store?wait=true', storeBody(`${app}::items`, Array.from({ length: 1000 }, (_, n) => item(at * 1000 + n, 1e4))), { 'x-app-key': key }))
await once(ours.port, httpRequest(`/api/apps/${app}/indexes`, JSON.stringify({ collection: 'items', field_name: 'title' }), { 'x-app-key': key }));
for (let i = 0; i < 8; i++) {
  const requests = Array.from({ length: 15000 }, (_, n) => httpRequest('/list', JSON.stringify({ root: `${app}::items`, find: { title: { is: item((n * 7919) % 10000, 1e4).title } }, limit: 20 }), {}))
  const c0 = cpu(ours.pid); const t = performance.now()
  noFailure(await drive({ port: ours.port, connections: 16, requests, status: 200 }))
  console.log('list', ((cpu(ours.pid) - c0) * 1000 / 15000).toFixed(1), 'us/req', (15000 / (performance.now() - t) * 1000).toFixed(0), '/s')
}
await ours.stop(); await place.close()
