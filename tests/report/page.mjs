/* SPDX-License-Identifier: BSD-2-Clause */
/* A report in a real browser:
 *
 *     node page.mjs CHROMIUM SCREENSHOTS NAME=PAGE.html...
 *
 * "runs" is the page of results, one of them live; the others are of reproductions.
 *
 * Prints a line for each test, as tests/run wants it. */
import { chromium } from 'playwright-core';
import axe from 'axe-core';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const PHONE = 390;
const DESK = 1280;
const HEIGHT = 900;

const [browserPath, screenshots, ...pages] = process.argv.slice(2);
let failed = 0;

function require(condition, reason) {
    if (!condition)
        throw new Error(reason);
}

async function test(name, check) {
    try {
        await check();
        console.log(`ok ${name}`);
    } catch (error) {
        failed++;
        console.log(`FAIL ${name}: ${error.message.split('\n')[0]}`);
    }
}

/* Opens the page and scrolls through it, so that every chart is drawn. */
async function open(browser, path) {
    const page = await browser.newPage({ viewport: { width: DESK, height: HEIGHT } });
    const seen = { requests: [], complaints: [] };
    page.on('request', request => seen.requests.push(request.url()));
    page.on('console', message => ['error', 'warning'].includes(message.type()) &&
            seen.complaints.push(message.text()));
    page.on('pageerror', error => seen.complaints.push(error.message));
    await page.goto(pathToFileURL(path).href);
    for (const plot of await page.$$('.plot')) {
        await plot.scrollIntoViewIfNeeded();
        await plot.waitForSelector('svg');
    }
    await page.evaluate(() => scrollTo(0, 0));
    return { page, seen };
}

const drawn = chart => chart.locator('.curve path').count();

async function checkAlone({ page, seen }, path) {
    const own = pathToFileURL(path).href;
    const others = seen.requests.filter(url => url !== own && !url.startsWith('data:'));
    require(!others.length, `asks for ${others[0]}`);
    require(!seen.complaints.length, `console: ${seen.complaints[0]}`);
    require(await page.evaluate(() => !window.planted), 'text of the results was run as a script');
}

/* The table behind a chart has a column for each curve. */
async function checkCurves({ page }) {
    const charts = await page.locator('figure.chart').all();
    require(charts.length, 'has no chart');
    for (const chart of charts) {
        const name = await chart.locator('figcaption').textContent();
        const curves = await chart.locator('.data thead th').count() - 1;
        require(curves > 0, `${name}: no curve`);
        require(await drawn(chart) === curves, `${name}: ${await drawn(chart)} of ${curves} curves drawn`);
        require(await chart.locator('.data tbody tr').count(), `${name}: the table is empty`);
    }
}

/* Whatever the order in which its points were measured. */
async function checkLeftToRight({ page }) {
    for (const path of await page.locator('.plot .curve path').all()) {
        const places = [...(await path.getAttribute('d')).matchAll(/[ML]([-\d.]+),/g)].map(match => +match[1]);
        require(places.every((x, i) => !i || x >= places[i - 1]), `a curve goes back: ${places}`);
    }
}

async function checkHover({ page }) {
    for (const chart of await page.locator('figure.chart').all()) {
        const name = await chart.locator('figcaption').textContent();
        await chart.locator('.plot').scrollIntoViewIfNeeded();
        const box = await chart.locator('.plot circle').first().boundingBox();
        await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
        require(/: [\d.]+(e[+-]?\d+)? /.test(await chart.locator('.value').textContent()),
                `${name}: no value under the pointer`);
        require(await chart.locator('.tip text').count(), `${name}: no tip at the pointer`);
    }
}

async function checkSwitch({ page }) {
    const chart = page.locator('figure.chart:has(.legend input)').first();
    const before = await drawn(chart);
    const box = chart.locator('.legend input').first();
    await box.focus();
    await page.keyboard.press('Space');
    require(await drawn(chart) === before - 1, 'a curve that is switched off stays');
    await page.keyboard.press('Space');
    require(await drawn(chart) === before, 'a curve that is switched on again does not come');
}

async function checkKeys({ page }) {
    const chart = page.locator('figure.chart:has(tbody tr + tr)').first();
    await chart.locator('.plot').focus();
    await page.keyboard.press('ArrowRight');
    const first = await chart.locator('.value').textContent();
    await page.keyboard.press('ArrowRight');
    const second = await chart.locator('.value').textContent();
    require(first && second && first !== second, `arrow keys show "${first}", then "${second}"`);
}

async function checkLicences({ page }) {
    const notice = page.locator('#licences pre').first();
    require(!await notice.isVisible(), 'the notices stand open');
    await page.locator('#licences summary').click();
    require(await notice.isVisible(), 'the notices cannot be opened');
}

/* Each row that was run says when it matches, and how near it is to that. */
async function checkCriteria({ page }) {
    const rows = await page.locator('.values tbody tr').all();
    require(rows.length, 'no row');
    for (const row of rows) {
        const id = await row.locator('th').textContent();
        const criterion = await row.locator('[data-title="matches if"]').textContent();
        const run = await row.locator('.verdict').textContent() !== 'not run';
        require(!run || /\((?:measured|ours \/ paper): -?[\d.]+/.test(criterion), `${id}: the criterion is "${criterion}"`);
    }
}

/* Lines of the file behind a link. */
async function saved(link) {
    const [head, data] = (await link.getAttribute('href')).split(/,(.*)/s);
    require(head.startsWith('data:text/csv') && await link.getAttribute('download'), `a link to ${head}`);
    return decodeURIComponent(data).trim().split('\r\n');
}

async function checkSaved({ page }) {
    for (const chart of await page.locator('figure.chart').all()) {
        const lines = await saved(chart.locator('.csv'));
        const numbers = (await chart.locator('.data tbody td').allTextContents()).filter(text => text !== '–');
        require(lines.length > numbers.length, `${lines.length - 1} lines of ${numbers.length} values`);
    }
    for (const one of await page.locator('.values').all()) {
        const lines = await saved(one.locator('xpath=following::a[@class="csv"][1]'));
        require(lines.length === await one.locator('tbody tr').count() + 1, `${lines.length} lines of values`);
        require(lines[0].includes('criterion'), lines[0]);
    }
}

/* No percentile is below the median. */
async function checkPercentiles({ page }) {
    const chart = page.locator('figure.chart:has(.statistic)').first();
    const numbers = async () => (await chart.locator('.data tbody td').allTextContents()).map(Number);
    const before = await numbers();
    await chart.locator('.statistic select').selectOption('p999');
    const after = await numbers();
    require(after.length === before.length && after.every((value, i) => !(value < before[i])), `${before}, ${after}`);
    require(after.some((value, i) => value > before[i]), 'the curve stays that of the median');
    require((await chart.locator('.plot svg').getAttribute('aria-label')).includes('99.9th percentile'), 'no label');
    await chart.locator('.statistic select').selectOption('median');
}

async function checkFilter({ page }) {
    const items = '.values tbody tr, article, .finding';
    const visible = () => page.locator(items).evaluateAll(all => all.filter(one => one.checkVisibility())
        .map(one => one.id + one.textContent.toLowerCase()));
    const all = (await visible()).length;
    const box = page.locator('.filter input');
    await box.fill('Latency');
    const some = await visible();
    require(some.length && some.length < all, `${some.length} of ${all} shown`);
    require(some.every(text => text.includes('latency')), 'others are shown');
    await box.fill('no such word');
    require(!(await visible()).length, 'something is shown');
    require((await page.locator('.filter output').textContent()).startsWith('0 of'), 'the count is wrong');
    await box.fill('');
    require((await visible()).length === all, 'not all come back');
}

/* What the paper has, what we have and the verdict are beside each other, and in view. */
async function checkKeyColumns({ page }) {
    const rows = await page.locator('.values tbody tr').all();
    require(rows.length, 'no row');
    for (const row of rows.slice(0, 5)) {
        const boxes = await Promise.all((await row.locator('.key').all()).map(cell => cell.boundingBox()));
        require(boxes.length === 3, `${boxes.length} columns`);
        require(boxes.every(box => box.x >= 0 && box.x + box.width <= PHONE), 'a column is out of view');
        require(boxes.every(box => box.y === boxes[0].y), 'the columns are not beside each other');
    }
}

async function checkWidth({ page }) {
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    require(over <= 0, `${over} pixels wider than the window`);
}

async function checkAccess({ page }) {
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() => axe.run());
    const grave = violations.filter(one => ['serious', 'critical'].includes(one.impact));
    require(!grave.length, grave.map(one => `${one.id} (${one.nodes[0].html.slice(0, 80)})`).join(', '));
}

async function checkPrint(browser, path) {
    const page = await browser.newPage({ viewport: { width: DESK, height: HEIGHT } });
    await page.goto(pathToFileURL(path).href);
    const pdf = await page.pdf({ format: 'A4' });
    require(pdf.length > 10000, `${pdf.length} bytes on paper`);
    require(await page.locator('.plot svg').count() === await page.locator('.plot').count(),
            'charts are missing on paper');
    await page.close();
}

/* One page, light and dark, wide and narrow: charts are drawn anew for each width. */
async function checkPage(browser, name, path) {
    const opened = await open(browser, path);
    const { page } = opened;
    const reproduction = name !== 'runs';
    const colours = new Set();
    const picture = suffix => page.screenshot({ path: join(screenshots, `${name}-${suffix}.png`) });
    await test(`${name} curves`, () => checkCurves(opened));
    await test(`${name} left to right`, () => checkLeftToRight(opened));
    await test(`${name} hover`, () => checkHover(opened));
    await test(`${name} switch`, () => checkSwitch(opened));
    await test(`${name} keys`, () => checkKeys(opened));
    if (reproduction)
        await test(`${name} criteria`, () => checkCriteria(opened));
    await test(`${name} saved`, () => checkSaved(opened));
    if (!reproduction)
        await test(`${name} percentiles`, () => checkPercentiles(opened));
    await test(`${name} filter`, () => checkFilter(opened));
    await test(`${name} licences`, () => checkLicences(opened));
    await page.evaluate(() => scrollTo(0, 0));
    for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        colours.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
        await test(`${name} ${colorScheme} access`, () => checkAccess(opened));
        await picture(colorScheme);
        await page.setViewportSize({ width: PHONE, height: HEIGHT });
        await test(`${name} ${colorScheme} phone`, () => checkWidth(opened));
        if (reproduction)
            await test(`${name} ${colorScheme} columns on a phone`, () => checkKeyColumns(opened));
        await picture(`phone-${colorScheme}`);
        await page.setViewportSize({ width: DESK, height: HEIGHT });
    }
    await test(`${name} dark`, () => require(colours.size === 2, `light and dark are ${[...colours]}`));
    await test(`${name} alone`, () => checkAlone(opened, path));
    await page.close();
    await test(`${name} print`, () => checkPrint(browser, path));
}

const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox'] });
for (const argument of pages) {
    const [name, path] = argument.split('=');
    await checkPage(browser, name, path);
}
await browser.close();
process.exit(failed ? 1 : 0);
