<?php
/**
 * Missing or wrong settings of this shop.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** The checks of the settings page, of Site Health, of WooCommerce's status page, and of the command line. */
final class Health {
	const GOOD  = 'good';
	const WATCH = 'watch';
	const TODO  = 'todo';

	/** What is known without asking, see FACTS. */
	const STORED = 'countersign_health';
	const FACTS  = array(
		// Why the last request failed, and since when; empty: the service responds and knows the key.
		'trouble'   => '',
		'since'     => 0,
		// Unix times of the webhook: when it was connected, the last message, the last whose signature did not fit,
		// and the last event that the hourly task found and no message had brought.
		'connected' => 0,
		'heard'     => 0,
		'unfit'     => 0,
		'missed'    => 0,
		// The last e-mail about all this.
		'mailed'    => 0,
	);
	const REFUSALS = array( 'unauthorized', 'invalid_api_key', 'forbidden' );

	/** Add the hooks. */
	public static function register(): void {
		add_filter( 'site_status_tests', array( self::class, 'add_test' ) );
		add_action( 'woocommerce_system_status_report', array( self::class, 'report' ) );
		// After the task has read what no message brought.
		add_action( Events::HOOK, array( self::class, 'alarm' ), 20 );
	}

	/** What is known. */
	private static function facts(): array {
		return array_merge( self::FACTS, (array) get_option( self::STORED, array() ) );
	}

	/**
	 * Note what has become known.
	 *
	 * @param array $facts Members of FACTS.
	 */
	public static function note( array $facts ): void {
		update_option( self::STORED, array_merge( self::facts(), $facts ), false );
	}

	/**
	 * Note how a request ended.
	 *
	 * @param string $reason Of a Service_Error, or empty.
	 */
	public static function asked( string $reason ): void {
		$trouble = 'unreachable' === $reason || in_array( $reason, self::REFUSALS, true ) ? $reason : '';
		if ( self::facts()['trouble'] !== $trouble ) {
			self::note(
				array( 'trouble' => $trouble, 'since' => time() )
			);
		}
	}

	/** A message came whose signature does not fit. Strangers can send one, so this alone alarms nobody. */
	public static function does_not_fit(): void {
		$facts = self::facts();
		if ( $facts['unfit'] <= $facts['heard'] ) {
			self::note( array( 'unfit' => time() ) );
		}
	}

	/**
	 * What does not work now, though it is set up.
	 *
	 * @return string[] Words by check.
	 */
	public static function troubles(): array {
		$facts = self::facts();
		$found = array();
		if ( in_array( $facts['trouble'], self::REFUSALS, true ) || ( '' !== $facts['trouble'] && $facts['since'] < time() - HOUR_IN_SECONDS ) ) {
			/* translators: %s: what is wrong */
			$found['connection'] = sprintf( __( 'No product with a class can be sold: %s.', 'countersign-woocommerce' ), Words::trouble( $facts['trouble'] ) );
		}
		if ( $facts['missed'] > max( $facts['heard'], $facts['connected'] ) && '' !== Settings::get( 'webhook_secret' ) ) {
			$found['webhook'] = $facts['unfit'] > $facts['heard']
				? __( 'The messages of the service do not fit the webhook secret, so decisions reach the shop up to an hour late. Connect the webhook again.', 'countersign-woocommerce' )
				: __( 'Messages of the service do not come, so decisions reach the shop up to an hour late. Can the service reach the address of this shop? Then connect the webhook again.', 'countersign-woocommerce' );
		}
		return $found;
	}

	/** Tell the shop what does not work, once a day. */
	public static function alarm(): void {
		$email = WC()->mailer()->get_emails()['countersign_broken'] ?? null;
		if ( $email && array() !== self::troubles() && self::facts()['mailed'] <= time() - DAY_IN_SECONDS ) {
			self::note( array( 'mailed' => time() ) );
			$email->send_words( implode( "\n", self::troubles() ), Settings_Page::url() );
		}
	}

	/**
	 * All checks, in the order in which a shop is set up. One request is sent.
	 *
	 * @return array[] Each with label, state, words, and perhaps link (address and label).
	 */
	public static function checks(): array {
		$notices = array();
		$trouble = '';
		try {
			$notices = (array) ( Client::get( '/v1/notices' )['data'] ?? array() );
		} catch ( Service_Error $error ) {
			$trouble = $error->reason;
		}
		$checks = array( 'connection' => self::connection( $trouble ) );
		if ( '' === $trouble ) {
			$checks['notice'] = self::notice( $notices );
		}
		if ( Settings::is_copy() ) {
			$checks['shop'] = self::check( __( 'Shop', 'countersign-woocommerce' ), self::WATCH, __( 'The orders here were begun at another address. If this is a copy of the shop, leave it so: they count as not begun here. If the shop has moved, press the button.', 'countersign-woocommerce' ) );
		}
		return $checks + array(
			'webhook' => self::webhook(),
			'tasks'   => self::tasks(),
			'class'   => self::first_class(),
			'payment' => self::payment(),
		);
	}

	/**
	 * The worst of some checks.
	 *
	 * @param array[] $checks As checks() has them.
	 */
	public static function worst( array $checks ): string {
		$states = array_intersect( array( self::TODO, self::WATCH, self::GOOD ), array_column( $checks, 'state' ) );
		return (string) reset( $states );
	}

	/**
	 * One check.
	 *
	 * @param string $label What is checked.
	 * @param string $state GOOD, WATCH or TODO.
	 * @param string $words What was found.
	 * @param array  $link  Address and label of where it is put right.
	 */
	private static function check( string $label, string $state, string $words, array $link = array() ): array {
		return compact( 'label', 'state', 'words', 'link' );
	}

	/**
	 * Address and key.
	 *
	 * @param string $trouble Why the request failed, or empty.
	 */
	private static function connection( string $trouble ): array {
		$label = __( 'Service', 'countersign-woocommerce' );
		if ( '' !== $trouble ) {
			/* translators: %s: what is wrong */
			return self::check( $label, self::TODO, sprintf( __( 'It does not work: %s.', 'countersign-woocommerce' ), Words::trouble( $trouble ) ) );
		}
		$works = __( 'The service responds, and knows the key.', 'countersign-woocommerce' );
		if ( Settings::is_test() ) {
			return self::check( $label, self::WATCH, $works . ' ' . __( 'It is a test key: buyers choose themselves what their identity check finds. Enter a live key before you sell.', 'countersign-woocommerce' ) );
		}
		return self::check( $label, self::GOOD, $works );
	}

	/**
	 * Whether there is a notice to initial.
	 *
	 * @param array $notices What the service has.
	 */
	private static function notice( array $notices ): array {
		$titles = array();
		foreach ( $notices as $one ) {
			if ( is_string( $one['version'] ?? null ) ) {
				$titles[] = (string) ( $one['title'] ?? '' );
			}
		}
		$label = __( 'Notice', 'countersign-woocommerce' );
		return array() === $titles
			? self::check( $label, self::TODO, __( 'No notice is in force for this key: ask the operator of the service.', 'countersign-woocommerce' ) )
			: self::check( $label, self::GOOD, implode( '; ', $titles ) );
	}

	/** Whether messages of the service are expected, and come. */
	private static function webhook(): array {
		$label = __( 'Webhook', 'countersign-woocommerce' );
		if ( '' === Settings::get( 'webhook_secret' ) ) {
			return self::check( $label, self::TODO, __( 'Not connected: decisions reach the shop up to an hour late.', 'countersign-woocommerce' ) );
		}
		$facts   = self::facts();
		$trouble = self::troubles()['webhook'] ?? '';
		if ( '' !== $trouble ) {
			return self::check( $label, self::TODO, $trouble );
		}
		if ( $facts['unfit'] > $facts['heard'] ) {
			return self::check( $label, self::WATCH, __( 'The last message did not fit the webhook secret. If the service sent it, connect the webhook again.', 'countersign-woocommerce' ) );
		}
		if ( 0 === $facts['heard'] ) {
			return self::check( $label, self::WATCH, __( 'Connected, and no message has come yet. Can the service reach the address of this shop?', 'countersign-woocommerce' ) );
		}
		/* translators: %s: a period such as “5 mins” */
		return self::check( $label, self::GOOD, sprintf( __( 'Connected. The last message came %s ago.', 'countersign-woocommerce' ), human_time_diff( $facts['heard'] ) ) );
	}

	/** Whether WordPress runs what is scheduled. */
	private static function tasks(): array {
		$next  = (int) wp_next_scheduled( Events::HOOK );
		$label = __( 'Scheduled tasks', 'countersign-woocommerce' );
		return $next > time() - 2 * HOUR_IN_SECONDS
			? self::check( $label, self::GOOD, __( 'Once an hour the shop reads what no message brought.', 'countersign-woocommerce' ) )
			: self::check( $label, self::WATCH, __( 'WordPress does not run its scheduled tasks: what no message brought is not noticed. Ask the host of this site for WP-Cron.', 'countersign-woocommerce' ) );
	}

	/** Whether anything has a class. */
	private static function first_class(): array {
		$count = Products::count_classed();
		$label = __( 'Products', 'countersign-woocommerce' );
		if ( 0 === $count ) {
			$link = array( admin_url( 'edit.php?post_type=product' ), __( 'Choose products', 'countersign-woocommerce' ) );
			return self::check( $label, self::TODO, __( 'Nothing has a class yet, so no order is checked. Give one to products (Quick Edit or Edit), or to categories for all of their products.', 'countersign-woocommerce' ), $link );
		}
		/* translators: %d: a number */
		return self::check( $label, self::GOOD, sprintf( _n( '%d product or category has a class.', '%d products or categories have a class.', $count, 'countersign-woocommerce' ), $count ) );
	}

	/** Whether a cleared order can be paid. */
	private static function payment(): array {
		$names = array();
		foreach ( WC()->payment_gateways()->payment_gateways() as $gateway ) {
			if ( Gateway::ID !== $gateway->id && 'yes' === $gateway->enabled ) {
				$names[ $gateway->id ] = $gateway->get_method_title();
			}
		}
		$label = __( 'Ways to pay', 'countersign-woocommerce' );
		if ( array() === $names ) {
			$link = array( admin_url( 'admin.php?page=wc-settings&tab=checkout' ), __( 'Choose one', 'countersign-woocommerce' ) );
			return self::check( $label, self::TODO, __( 'The shop has none: a cleared order could not be paid.', 'countersign-woocommerce' ), $link );
		}
		$others  = array_diff_key( $names, array_flip( array( 'bacs', 'cheque', 'cod' ) ) );
		$express = __( 'While a cart needs the notice, express buttons are hidden on product pages, mini-cart, cart and checkout if their plugin asks WooCommerce for the ways to pay, and refused if they use its checkout. One that charges by itself only puts its order on hold: try each with a classed product, or turn it off.', 'countersign-woocommerce' );
		return self::check( $label, self::GOOD, implode( ', ', $names ) . ( array() === $others ? '' : ". {$express}" ) );
	}

	/**
	 * Add a test to Site Health.
	 *
	 * @param array $tests Those of WordPress and others.
	 */
	public static function add_test( $tests ) {
		$tests['direct']['countersign'] = array( 'label' => 'Countersign', 'test' => array( self::class, 'test' ) );
		return $tests;
	}

	/** The test of Site Health. */
	public static function test(): array {
		$checks = self::checks();
		$worst  = self::worst( $checks );
		$lines  = '';
		foreach ( $checks as $one ) {
			if ( self::GOOD !== $one['state'] ) {
				$lines .= '<p><strong>' . esc_html( $one['label'] ) . '</strong>: ' . esc_html( $one['words'] ) . '</p>';
			}
		}
		$results = array(
			self::GOOD  => array( 'good', 'green', __( 'Countersign is set up', 'countersign-woocommerce' ) ),
			self::WATCH => array( 'recommended', 'orange', __( 'Countersign needs a look', 'countersign-woocommerce' ) ),
			self::TODO  => array( 'critical', 'red', __( 'Countersign is not set up: orders with a classed product cannot be sold', 'countersign-woocommerce' ) ),
		);
		list( $status, $color, $label ) = $results[ $worst ];
		return array(
			'label'       => $label,
			'status'      => $status,
			'badge'       => array( 'label' => 'Countersign', 'color' => $color ),
			'description' => '' === $lines ? '<p>' . esc_html__( 'Orders with a classed product go through the notice.', 'countersign-woocommerce' ) . '</p>' : $lines,
			'actions'     => '<a href="' . esc_url( Settings_Page::url() ) . '">' . esc_html__( 'Settings', 'countersign-woocommerce' ) . '</a>',
			'test'        => 'countersign',
		);
	}

	/** The lines of WooCommerce's status page. */
	public static function report(): void {
		echo '<table class="wc_status_table widefat" cellspacing="0"><thead><tr><th colspan="3" data-export-label="Countersign"><h2>Countersign ' . esc_html( VERSION ) . '</h2></th></tr></thead><tbody>';
		foreach ( self::checks() as $name => $one ) {
			$mark = self::GOOD === $one['state'] ? 'yes' : 'error';
			echo '<tr><td data-export-label="' . esc_attr( ucfirst( $name ) ) . '">' . esc_html( $one['label'] ) . ':</td><td class="help">&nbsp;</td><td><mark class="' . esc_attr( $mark ) . '">' . esc_html( $one['words'] ) . '</mark></td></tr>';
		}
		echo '</tbody></table>';
	}
}
