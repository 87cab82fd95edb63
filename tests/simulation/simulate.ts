import { pathToFileURL } from 'node:url'
import { getBundle } from '@tollbase/testing/bundle'

/** One bundle: to load its modules one by one costs as much as three seeds do. */
await import(pathToFileURL(getBundle('tests/simulation/main.ts')).href)
