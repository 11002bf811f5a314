<?php
/**
 * The settings page.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** WooCommerce → Countersign, for administrators. Secrets are never shown again. */
final class Settings_Page {
	const PAGE    = 'countersign';
	const CONNECT = 'countersign_connect';
	const MOVED   = 'countersign_moved';

	/** Add the page. */
	public static function register(): void {
		add_action( 'admin_init', array( self::class, 'add_fields' ) );
		add_action( 'admin_menu', array( self::class, 'add_page' ), 60 );
		add_action( 'admin_post_' . self::CONNECT, array( self::class, 'connect' ) );
		add_action( 'admin_post_' . self::MOVED, array( self::class, 'move' ) );
		add_action( 'admin_notices', array( self::class, 'warn' ) );
		add_filter( 'plugin_action_links_' . plugin_basename( FILE ), array( self::class, 'add_link' ) );
	}

	/** The address of the page. */
	public static function url(): string {
		return admin_url( 'admin.php?page=' . self::PAGE );
	}

	/**
	 * The link in the list of plugins.
	 *
	 * @param string[] $links Those that WordPress has.
	 */
	public static function add_link( $links ) {
		return array_merge( array( 'settings' => '<a href="' . esc_url( self::url() ) . '">' . esc_html__( 'Settings', 'countersign-woocommerce' ) . '</a>' ), $links );
	}

	/** Without WooCommerce the plugin does nothing. */
	public static function woocommerce_is_missing(): void {
		echo '<div class="notice notice-error"><p>' . esc_html__( 'Countersign needs WooCommerce, which is not active: no order is checked.', 'countersign-woocommerce' ) . '</p></div>';
	}

	/** Where staff of a shop look: that nothing is set up, what does not work, or that the key is one of the sandbox. Not on a copy of the shop. */
	public static function warn(): void {
		$screen = get_current_screen();
		$places = array_merge( array( 'dashboard', 'plugins' ), wc_get_screen_ids() );
		if ( ! current_user_can( 'manage_woocommerce' ) || ! $screen || ! in_array( $screen->id, $places, true ) ) {
			return;
		}
		foreach ( Health::troubles() as $words ) {
			echo '<div class="notice notice-error"><p>Countersign: ' . esc_html( $words ) . ' <a href="' . esc_url( self::url() ) . '">' . esc_html__( 'Set-up check', 'countersign-woocommerce' ) . '</a></p></div>';
		}
		if ( ! Settings::is_complete() ) {
			echo '<div class="notice notice-error"><p>' . esc_html__( 'Countersign is not set up: no product with a class can be sold.', 'countersign-woocommerce' )
				. ' <a href="' . esc_url( self::url() ) . '">' . esc_html__( 'Set it up', 'countersign-woocommerce' ) . '</a></p></div>';
		} elseif ( Settings::is_test() && 'production' === wp_get_environment_type() ) {
			echo '<div class="notice notice-warning"><p>' . esc_html__( 'Countersign has a test key: buyers choose themselves what their identity check finds. Do not sell with it.', 'countersign-woocommerce' ) . '</p></div>';
		}
	}

	/** Declare the option, which options.php stores for those who may `manage_options`. */
	public static function add_fields(): void {
		register_setting(
			self::PAGE,
			Settings::OPTION,
			array( 'type' => 'array', 'sanitize_callback' => array( self::class, 'sanitize' ), 'show_in_rest' => false )
		);
		add_settings_section( 'countersign', '', '__return_null', self::PAGE );
		$fields = array(
			'base_url'       => __( 'Address of the service', 'countersign-woocommerce' ),
			'api_key'        => __( 'API key', 'countersign-woocommerce' ),
			'webhook_secret' => __( 'Webhook secret', 'countersign-woocommerce' ),
		) + array_map( 'current', Settings::choices() );
		foreach ( $fields as $name => $label ) {
			add_settings_field( $name, $label, array( self::class, 'show_field' ), self::PAGE, 'countersign', array( 'label_for' => "countersign-{$name}", 'name' => $name ) );
		}
	}

	/** Add the page to WooCommerce's menu. */
	public static function add_page(): void {
		add_submenu_page( 'woocommerce', 'Countersign', 'Countersign', 'manage_options', self::PAGE, array( self::class, 'show' ) );
	}

	/**
	 * One field; that of a secret is always empty.
	 *
	 * @param array $arguments With the `name`.
	 */
	public static function show_field( array $arguments ): void {
		$name   = $arguments['name'];
		$secret = 'base_url' !== $name;
		if ( Settings::is_constant( $name ) ) {
			echo esc_html__( 'Set in wp-config.php', 'countersign-woocommerce' );
			return;
		}
		if ( isset( Settings::choices()[ $name ] ) ) {
			self::show_choice( $name );
			return;
		}
		printf(
			'<input type="%1$s" class="regular-text" id="countersign-%2$s" name="%3$s[%2$s]" value="%4$s" placeholder="%5$s" autocomplete="off">',
			$secret ? 'password' : 'url',
			esc_attr( $name ),
			esc_attr( Settings::OPTION ),
			esc_attr( $secret ? '' : Settings::get( $name ) ),
			esc_attr( $secret && '' !== Settings::get( $name ) ? __( 'Stored: leave empty to keep it', 'countersign-woocommerce' ) : '' )
		);
	}

	/**
	 * The choice of what the shop relies on, with the sentence about it.
	 *
	 * @param string $name Of Settings::choices().
	 */
	private static function show_choice( string $name ): void {
		list( , $choices, $about ) = Settings::choices()[ $name ];
		echo '<select id="countersign-' . esc_attr( $name ) . '" name="' . esc_attr( Settings::OPTION . "[{$name}]" ) . '">';
		foreach ( $choices as $value => $label ) {
			echo '<option value="' . esc_attr( $value ) . '"' . selected( Settings::get( $name ), $value, false ) . '>' . esc_html( $label ) . '</option>';
		}
		echo '</select><p class="description">' . esc_html( $about ) . '</p>';
	}

	/**
	 * What may be stored. WordPress calls it twice when the option is new, so it keeps what it has made.
	 *
	 * @param mixed $given What the form sent.
	 */
	public static function sanitize( $given ): array {
		$given  = is_array( $given ) ? $given : array();
		$stored = get_option( Settings::OPTION );
		$kept   = array_merge( array_fill_keys( array_keys( Settings::CONSTANTS ), '' ), is_array( $stored ) ? $stored : array() );
		$url    = isset( $given['base_url'] ) ? rtrim( esc_url_raw( trim( (string) $given['base_url'] ) ), '/' ) : $kept['base_url'];
		if ( '' !== $url && ! Settings::is_safe( $url ) ) {
			add_settings_error( Settings::OPTION, 'base_url', __( 'The address has to begin with https:// (or be on this machine): the key could be read on the way.', 'countersign-woocommerce' ) );
			$url = $kept['base_url'];
		}
		if ( $url !== $kept['base_url'] && '' !== $kept['base_url'] ) {
			// A key is for one service. Otherwise a changed address could be sent the stored one.
			$kept['api_key'] = '';
		}
		$kept['base_url'] = $url;
		foreach ( Settings::choices() as $name => $choice ) {
			if ( isset( $given[ $name ] ) && array_key_exists( (string) $given[ $name ], $choice[1] ) ) {
				$kept[ $name ] = (string) $given[ $name ];
			}
		}
		foreach ( array( 'api_key' => '/^csign_[sr]k_(test|live)_\S+$/D', 'webhook_secret' => '/^whsec_[A-Za-z0-9+\/=]+$/D' ) as $name => $form ) {
			$value = isset( $given[ $name ] ) ? trim( (string) $given[ $name ] ) : '';
			if ( '' !== $value && 1 !== preg_match( $form, $value ) ) {
				/* translators: %s: a field */
				add_settings_error( Settings::OPTION, $name, sprintf( __( 'This is no %s: it was not stored.', 'countersign-woocommerce' ), 'api_key' === $name ? __( 'API key', 'countersign-woocommerce' ) : __( 'Webhook secret', 'countersign-woocommerce' ) ) );
			} elseif ( '' !== $value ) {
				$kept[ $name ] = $value;
			}
		}
		return $kept;
	}

	/** The page: what is missing first, the settings below. */
	public static function show(): void {
		if ( ! current_user_can( 'manage_options' ) ) {
			return;
		}
		echo '<div class="wrap"><h1>Countersign</h1>';
		settings_errors();
		$failed = isset( $_GET['failed'] ) ? sanitize_key( wp_unslash( $_GET['failed'] ) ) : ''; // phpcs:ignore WordPress.Security.NonceVerification.Recommended -- shown, and nothing else.
		if ( '' !== $failed ) {
			/* translators: %s: what is wrong */
			echo '<div class="notice notice-error"><p>' . esc_html( sprintf( __( 'It does not work: %s.', 'countersign-woocommerce' ), Words::trouble( $failed ) ) ) . '</p></div>';
		}
		self::show_checks();
		echo '<h2>' . esc_html__( 'Settings', 'countersign-woocommerce' ) . '</h2>';
		echo '<p>' . esc_html__( 'Address and key are from the operator of your Countersign service.', 'countersign-woocommerce' ) . '</p>';
		echo '<form method="post" action="' . esc_url( admin_url( 'options.php' ) ) . '">';
		settings_fields( self::PAGE );
		do_settings_sections( self::PAGE );
		submit_button( __( 'Save and check', 'countersign-woocommerce' ) );
		echo '</form><p>' . esc_html__( 'The address for the webhook endpoint of the service:', 'countersign-woocommerce' ) . ' <code>' . esc_html( rest_url( 'countersign/v1/webhook' ) ) . '</code></p></div>';
	}

	/** The checks, each with what to press. */
	private static function show_checks(): void {
		$checks = Health::checks();
		$marks  = array(
			Health::GOOD  => array( 'yes-alt', '#007017', __( 'good', 'countersign-woocommerce' ) ),
			Health::WATCH => array( 'warning', '#996800', __( 'look at this', 'countersign-woocommerce' ) ),
			Health::TODO  => array( 'dismiss', '#b32d2e', __( 'missing', 'countersign-woocommerce' ) ),
		);
		echo '<h2>' . esc_html__( 'Set-up check', 'countersign-woocommerce' ) . '</h2><table class="widefat striped" id="countersign-checks" style="max-width:60em"><tbody>';
		foreach ( $checks as $name => $one ) {
			list( $icon, $color, $word ) = $marks[ $one['state'] ];
			echo '<tr data-check="' . esc_attr( $name ) . '" data-state="' . esc_attr( $one['state'] ) . '"><td style="width:1.5em"><span class="dashicons dashicons-' . esc_attr( $icon ) . '" style="color:' . esc_attr( $color ) . '" aria-hidden="true"></span><span class="screen-reader-text">' . esc_html( $word ) . '</span></td>';
			echo '<th scope="row" style="width:10em;font-weight:600">' . esc_html( $one['label'] ) . '</th><td>' . esc_html( $one['words'] ) . '</td><td style="text-align:right">';
			if ( 'webhook' === $name && Health::GOOD !== $one['state'] && Settings::is_complete() && ! Settings::is_constant( 'webhook_secret' ) ) {
				self::show_button( self::CONNECT, __( 'Connect the webhook', 'countersign-woocommerce' ), 'button-primary' );
			} elseif ( 'shop' === $name ) {
				self::show_button( self::MOVED, __( 'The shop has moved', 'countersign-woocommerce' ) );
			} elseif ( array() !== $one['link'] ) {
				echo '<a class="button" href="' . esc_url( $one['link'][0] ) . '">' . esc_html( $one['link'][1] ) . '</a>';
			}
			echo '</td></tr>';
		}
		echo '</tbody></table>';
		if ( Health::GOOD === Health::worst( $checks ) ) {
			echo '<p>' . esc_html__( 'Everything is set up. Order a product with a class yourself, before your buyers do.', 'countersign-woocommerce' ) . '</p>';
		}
	}

	/**
	 * A button of the checks.
	 *
	 * @param string $action What it does.
	 * @param string $label  What it says.
	 * @param string $look   A class of WordPress's, or empty.
	 */
	private static function show_button( string $action, string $label, string $look = '' ): void {
		echo '<form method="post" action="' . esc_url( admin_url( 'admin-post.php' ) ) . '"><input type="hidden" name="action" value="' . esc_attr( $action ) . '">';
		wp_nonce_field( $action );
		echo '<button class="button ' . esc_attr( $look ) . '">' . esc_html( $label ) . '</button></form>';
	}

	/**
	 * Refuse whoever may not, or does not come from the page.
	 *
	 * @param string $action The action, which its nonce is for.
	 */
	private static function require_administrator( string $action ): void {
		if ( ! current_user_can( 'manage_options' ) ) {
			wp_die( esc_html__( 'You may not do this.', 'countersign-woocommerce' ), '', array( 'response' => 403 ) );
		}
		check_admin_referer( $action );
	}

	/** The shop is at another address than before, and is no copy. */
	public static function move(): void {
		self::require_administrator( self::MOVED );
		Settings::has_moved();
		wp_safe_redirect( self::url() );
		exit;
	}

	/** Make the webhook endpoint. */
	public static function connect(): void {
		self::require_administrator( self::CONNECT );
		$url = self::url();
		try {
			Events::connect();
		} catch ( Service_Error $error ) {
			$url = add_query_arg( 'failed', $error->reason, $url );
		}
		wp_safe_redirect( $url );
		exit;
	}
}
